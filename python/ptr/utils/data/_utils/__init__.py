"""Parts of the loader."""

from ptr.utils.data._utils import collate, fetch

__all__ = ["collate", "fetch"]
