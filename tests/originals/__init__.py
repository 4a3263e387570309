"""The originals of the presets: each is run, and its delays are compared with ours."""
