//! The dispatcher inside the kernel, from the same C files
