"""origami for Python.

origami.plugin is for the author of a plugin that compiles and runs kernels (an executor).
"""
