//! The names of FIFOs, who may have which end, and what is refused.

mod common;

use common::{name, namespace};
use punctual_ipc::{Access, Fifo, FifoAttr, Lifetime, Namespace};
use rustix::fs::{flock, FlockOperation};

#[test]
fn a_name_is_of_one_object_while_a_process_has_it_open() {
    let (_folder, namespace) = namespace();
    let create = |lifetime| Fifo::create(&namespace, &name("0"), FifoAttr::default(), lifetime);
    let fifo = create(Lifetime::Used).unwrap();
    let error = create(Lifetime::Used).unwrap_err();
    assert_eq!(error.errno, Some(libc::EEXIST));
    assert!(error.to_string().contains("there is a fifo 0 already"), "{error}");
    let same = Fifo::open(&namespace, &name("0")).unwrap();
    fifo.writer(Access::Shared).unwrap().put(b"hello").unwrap();
    drop(fifo);
    let mut into = [0; 5];
    same.reader(Access::Shared).unwrap().get(&mut into).unwrap();
    assert_eq!(&into, b"hello");
    assert_eq!(Fifo::names(&namespace).unwrap(), [name("0")]);
    drop(same);
    assert_eq!(Fifo::names(&namespace).unwrap(), []);
    let error = Fifo::open(&namespace, &name("0")).unwrap_err();
    assert_eq!(error.errno, Some(libc::ENOENT));
    assert!(error.to_string().contains("there is no fifo 0; make it first"), "{error}");
}

#[test]
fn a_persistent_fifo_lives_until_it_is_removed_and_its_ends_even_longer() {
    let (_folder, namespace) = namespace();
    let name = name("kept");
    drop(Fifo::create(&namespace, &name, FifoAttr::default(), Lifetime::Persistent).unwrap());
    let fifo = Fifo::open(&namespace, &name).unwrap();
    assert_eq!(fifo.state().lifetime, Lifetime::Persistent);
    let mut writer = fifo.writer(Access::Exclusive).unwrap();
    Fifo::remove(&namespace, &name).unwrap();
    assert_eq!(Fifo::remove(&namespace, &name).unwrap_err().errno, Some(libc::ENOENT));
    writer.put(b"x").unwrap();
    assert_eq!(fifo.state().used, 1);
    // The name is free for another, which the end of the first does not touch.
    let other = Fifo::create(&namespace, &name, FifoAttr::default(), Lifetime::Used).unwrap();
    drop((writer, fifo));
    assert_eq!(Fifo::names(&namespace).unwrap(), std::slice::from_ref(&name));
    assert_eq!(other.state().used, 0);
}

#[test]
fn a_name_that_no_process_uses_is_free_while_another_process_reclaims_too() {
    let (_folder, namespace) = namespace();
    let create = |lifetime| Fifo::create(&namespace, &name("0"), FifoAttr::default(), lifetime);
    drop(create(Lifetime::Persistent).unwrap());
    // As a killed process leaves it.
    let fifos = namespace.path().join("fifo");
    std::fs::remove_file(fifos.join("0/persistent")).unwrap();
    let other = std::fs::File::open(&fifos).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    std::thread::scope(|scope| {
        let created = scope.spawn(|| create(Lifetime::Used));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!created.is_finished(), "it waits for the other");
        flock(&other, FlockOperation::Unlock).unwrap();
        created.join().unwrap().unwrap();
    });
}

#[test]
fn a_side_has_one_sole_end_or_some_that_share_it() {
    let (_folder, namespace) = namespace();
    let fifo = Fifo::create(&namespace, &name("f"), FifoAttr::default(), Lifetime::Used).unwrap();
    let sole = fifo.writer(Access::Exclusive).unwrap();
    assert_eq!(fifo.state().sole_writer, Some(std::process::id()));
    for access in [Access::Exclusive, Access::Shared] {
        let error = fifo.writer(access).unwrap_err();
        assert_eq!(error.errno, Some(libc::EBUSY));
        assert!(error.to_string().contains("has the only writer of this FIFO"), "{error}");
    }
    drop(sole);
    let _one = fifo.writer(Access::Shared).unwrap();
    let _other = fifo.writer(Access::Shared).unwrap();
    let error = fifo.writer(Access::Exclusive).unwrap_err();
    assert!(error.to_string().contains("the FIFO has a writer already"), "{error}");
    // The sides have nothing to do with each other.
    fifo.reader(Access::Exclusive).unwrap();
    assert_eq!(fifo.state().sole_writer, None);
}

#[test]
fn a_folder_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, namespace) = namespace();
    let path = folder.path().join("objects");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o750)).unwrap();
    let error = Namespace::at(&path).unwrap_err();
    assert!(error.to_string().contains("is open to other users (mode 750)"), "{error}");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(namespace.path(), &link).unwrap();
    assert!(Namespace::at(&link).is_err());
}

#[test]
fn a_fifo_of_another_version_is_refused_whole() {
    let (_folder, namespace) = namespace();
    let fifo =
        Fifo::create(&namespace, &name("f"), FifoAttr::default(), Lifetime::Persistent).unwrap();
    let memory = namespace.path().join("fifo/f/memory");
    let memory = std::fs::OpenOptions::new().write(true).open(memory).unwrap();
    std::os::unix::fs::FileExt::write_at(&memory, &[99], 8).unwrap();
    let error = Fifo::open(&namespace, &name("f")).unwrap_err();
    assert_eq!(error.errno, Some(libc::EBADMSG));
    assert!(error.to_string().contains("of another version of Punctual; remove it"), "{error}");
    drop(fifo);
    memory.set_len(100).unwrap();
    assert_eq!(Fifo::open(&namespace, &name("f")).unwrap_err().errno, Some(libc::EBADMSG));
}
