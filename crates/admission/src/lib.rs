//! Does it fit: the tests a task set passes before it may start
