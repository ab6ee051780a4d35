"""The chapter on CIFAR-10 and on images that people judged."""
