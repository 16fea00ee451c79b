"""The version of this package, which is that of Fetchwell."""

__version__ = "0.1.0"
