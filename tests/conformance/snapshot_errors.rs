//! What real snapshot files become when they are damaged.
