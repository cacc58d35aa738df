//! The same task set under the kernel's own policies, for comparison
