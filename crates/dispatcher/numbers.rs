//! For build scripts: the numbers of C headers, which tests compare with Rust's.

use std::path::Path;

/// A C source with a table of the headers' numbers: the value of each enumerator and numeric macro,
/// the size of each structure, and the offset of each of its fields as `structure.field`; a null
/// name ends it. What is nested in a structure is left out.
pub fn table(folder: &Path, headers: &[&str], table: &str) -> String {
    let mut source = String::new();
    let mut rows = String::new();
    let mut row = |name: &str, value: &str| {
        rows += &format!("{{ \"{name}\", (unsigned long long)({value}) }},\n");
    };
    for header in headers {
        source += &format!("#include \"{header}\"\n");
        let path = folder.join(header);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let (mut structure, mut depth) = (None, 0);
        for line in text.lines().map(|line| line.split("/*").next().unwrap_or_default().trim()) {
            let words: Vec<_> =
                line.split([' ', '\t', ';', '[']).filter(|w| !w.is_empty()).collect();
            match (depth, structure, &words[..]) {
                (0, _, ["struct", name, "{"]) => {
                    structure = Some(*name);
                    row(name, &format!("sizeof(struct {name})"));
                }
                (0, _, ["#define", name, value, ..])
                    if !name.contains('(')
                        && value.starts_with(|c: char| c == '(' || c.is_ascii_digit()) =>
                {
                    row(name, name);
                }
                (1, None, [name, "=", ..]) => row(name, name),
                (1, Some(of), [.., field]) if line.ends_with(';') && !line.starts_with('}') => {
                    let field = words.get(1).filter(|_| line.contains('[')).unwrap_or(field);
                    row(
                        &format!("{of}.{field}"),
                        &format!("__builtin_offsetof(struct {of}, {field})"),
                    );
                }
                _ => {}
            }
            depth += i32::from(line.ends_with('{')) - i32::from(line.starts_with('}'));
            structure = structure.filter(|_| depth > 0);
        }
    }
    format!(
        "{source}const struct {{ const char *name; unsigned long long value; }} {table}[] = {{\n\
         {rows}{{ 0, 0 }} }};\n"
    )
}
