"""What everything else builds on: errors, settings, files, tokens, sentences, logs."""
