-- For guests; null: they are shown none.
ALTER TABLE venue ADD COLUMN phone TEXT;
