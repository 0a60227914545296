"""The operator generator: reads `crates/ops/yaml/*.yaml`, writes every generated file of the repository."""
