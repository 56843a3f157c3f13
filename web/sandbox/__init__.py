"""The test environment's sandbox: echo receivers that show a partner each delivery."""
