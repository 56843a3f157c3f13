"""Shared modules: errors, settings, files, tokens, translations, text and network functions."""
