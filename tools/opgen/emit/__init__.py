"""One emitter per output. Each takes the operators and returns `{path: text}`; nothing here writes files."""
