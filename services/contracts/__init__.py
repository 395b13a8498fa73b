"""One frozen type for each hop between the parts, and the codec that puts them on the wire."""
