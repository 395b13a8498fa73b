"""Plans past one machine: a thousand plants and more, with the real server half and a stated network."""
