//! What the workspace's own tests share.
