"""The command line `boardlift`; needs `pip install boardlift[cli]`."""
