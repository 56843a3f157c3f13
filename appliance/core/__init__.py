"""Shared basics: errors, settings, files, tokens, translations, text and network helpers."""
