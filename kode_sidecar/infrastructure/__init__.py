"""Models, tool servers, files, disk, programs."""
