"""Imported by the process that workers of Dask are forked from, so that numba is ready to load what is compiled."""

from tests.command_server import ready_compiler

ready_compiler()
