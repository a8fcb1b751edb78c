"""Control of a running fake or proxy from outside: HTTP/JSON on a unix socket of mode 0600.

`api.Control` answers requests (no sockets in it), `http` carries them, `client` asks, `ctl` is the
command line. What must never happen here: a mistake in a request changes something, or is
answered without saying what was wanted.
"""
