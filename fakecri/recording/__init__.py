"""What was called: the recorder, its files, and what is learnt from them."""
