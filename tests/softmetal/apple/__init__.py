"""Compares our declarations of Metal and Foundation with what Apple made; see check_api.py."""
