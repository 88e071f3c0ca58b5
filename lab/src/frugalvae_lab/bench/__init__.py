"""Running classifiers over streams of tasks and recording what happened."""
