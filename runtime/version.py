"""The version, in a module of its own so that `moonwake --version` and the build read it without importing the rest."""

__version__ = "0.1.0"
