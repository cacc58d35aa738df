//! The user host: a dispatcher's decisions carried out on any Linux, without set-up
