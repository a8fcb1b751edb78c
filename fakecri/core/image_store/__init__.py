"""Images: references, the store and its registry, images as volumes."""
