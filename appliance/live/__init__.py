"""The live feed: what commits change, told to doors and boards that listen."""
