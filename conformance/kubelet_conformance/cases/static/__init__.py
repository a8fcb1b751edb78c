"""Static pods, their sources and their mirror pods (SRC-, MIRR-)."""
