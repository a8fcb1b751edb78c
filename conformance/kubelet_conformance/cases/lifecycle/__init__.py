"""Pod lifecycle: start, stop, restart, deletion, status (LIFE-, STAT-)."""
