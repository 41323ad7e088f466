"""The commands of `semcache`, one file a group; each adds itself to the parser by `add`."""
