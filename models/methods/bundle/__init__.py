"""Bundle methods: a server half that minimises the cut model of the sites' risks."""
