"""The reference models, and the script that records what they compute."""
