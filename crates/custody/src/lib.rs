//! What Punctual changes on a machine, written down before it is done and given back whatever happens
