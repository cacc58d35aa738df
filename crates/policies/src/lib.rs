//! The allocators: who runs, as jobs for the dispatcher
