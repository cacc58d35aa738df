//! What a shared object says of itself (elf(5)): which symbols it lacks, which libraries it needs,
//! where its variables are, which parameters it has. What it says wrongly is left out.

use object::elf::{DT_NEEDED, PT_INTERP};
use object::read::elf::{Dyn, ElfFile64, ProgramHeader};
use object::{NativeEndian, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolKind};

/// A file for the kind of processor that executes this.
pub struct Elf<'a>(ElfFile64<'a, NativeEndian>);

/// A variable in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// From the address where the file is loaded on.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

impl<'a> Elf<'a> {
    /// `None`: it is no file of this kind.
    pub fn parse(contents: &'a [u8]) -> Option<Elf<'a>> {
        ElfFile64::parse(contents).ok().map(Elf)
    }

    /// Whether it is loaded into a process. A program that may be loaded anywhere looks the same,
    /// but names its interpreter.
    pub fn is_shared_object(&self) -> bool {
        let programs = self.0.elf_program_headers().iter();
        let mut kinds = programs.map(|program| program.p_type(NativeEndian));
        self.0.kind() == ObjectKind::Dynamic && kinds.all(|kind| kind != PT_INTERP)
    }

    /// The symbols that other files have to have.
    pub fn undefined(&self) -> Vec<&'a [u8]> {
        let symbols = self.0.dynamic_symbols();
        let missing = symbols.filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
        missing.filter_map(|s| s.name_bytes().ok()).filter(|name| !name.is_empty()).collect()
    }

    /// The variable of this name, static ones too, unless the file was stripped of those.
    pub fn variable(&self, name: &[u8]) -> Option<Variable> {
        let mut symbols = self.0.dynamic_symbols().chain(self.0.symbols());
        let found = symbols.find(|symbol| {
            let is_variable = symbol.kind() == SymbolKind::Data && !symbol.is_undefined();
            is_variable && symbol.name_bytes() == Ok(name)
        });
        found.map(|symbol| Variable { address: symbol.address(), size: symbol.size() })
    }

    /// The libraries that it needs.
    pub fn needed(&self) -> Vec<&'a [u8]> {
        let (sections, contents) = (self.0.elf_section_table(), self.0.data());
        let Ok(Some((entries, names))) = sections.dynamic(NativeEndian, contents) else {
            return Vec::new();
        };
        let Ok(names) = sections.strings(NativeEndian, contents, names) else { return Vec::new() };
        let needed = entries.iter().filter(|entry| entry.tag32(NativeEndian) == Some(DT_NEEDED));
        needed.filter_map(|entry| entry.string(NativeEndian, names).ok()).collect()
    }

    /// The texts of a section, each with its end.
    pub fn texts(&self, section: &str) -> Vec<&'a [u8]> {
        let contents = self.0.section_by_name(section).and_then(|section| section.data().ok());
        let texts = contents.unwrap_or(&[]).split(|&byte| byte == 0);
        texts.filter(|text| !text.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_what_it_is() {
        let me = std::fs::read("/proc/self/exe").expect("/proc is mounted");
        let elf = Elf::parse(&me).expect("it executes");
        assert!(!elf.is_shared_object(), "it names its interpreter");
        assert!(elf.needed().iter().any(|name| name.starts_with(b"libc.so")));
        assert!(elf.undefined().contains(&&b"malloc"[..]));
        assert_eq!(elf.variable(b"no such variable"), None);
        assert_eq!(elf.texts("rtl_parameters"), Vec::<&[u8]>::new());
    }

    #[test]
    fn what_is_no_such_file_is_none() {
        let me = std::fs::read("/proc/self/exe").expect("/proc is mounted");
        let other_endian = [&me[..5], &[3 - me[5]], &me[6..]].concat();
        for contents in [&b"#!/bin/sh\n"[..], &[], &me[..40], &other_endian] {
            assert!(Elf::parse(contents).is_none());
        }
    }
}
