"""cosim train: train a hardware network on a task."""
