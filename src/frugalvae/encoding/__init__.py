"""From a folder of images to a feature file: ``frugalvae encode``."""
