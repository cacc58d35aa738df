//! Hierarchies with random phases, servers, budget groups and disturbers: nobody that was promised
//! something misses, and none takes longer than its bound.

use punctual_admission::{analyse, Fit};
use punctual_oracles::{hierarchy, seeds, simulate, Random};

#[test]
fn nobody_admitted_in_a_hierarchy_misses() {
    let (mut promised, mut grouped, mut limited, mut deep) = (0, 0, 0, 0);
    for seed in seeds(3000) {
        let set = hierarchy(&mut Random::new(seed));
        let cpu = analyse(&set).cpus.remove(0);
        if !cpu.tasks.iter().any(|t| t.fit == Fit::Fits) {
            continue;
        }
        let seen = simulate(&set, 1200).unwrap_or_else(|e| panic!("seed {seed}: {e}: {set:#?}"));
        for (t, seen) in cpu.tasks.iter().zip(&seen).filter(|(t, _)| t.fit == Fit::Fits) {
            assert_eq!(seen.misses, 0, "seed {seed}: {} misses at {:?}: {set:#?} {cpu:#?}", t.name, seen.first_miss);
            let bound = t.response.unwrap();
            assert!(seen.worst <= bound, "seed {seed}: {} took {}, bound {bound}: {set:#?}", t.name, seen.worst);
            let spec = &set.tasks[t.task];
            promised += 1;
            grouped += u64::from(spec.group.is_some());
            limited += u64::from(spec.budget_group.is_some());
            deep += u64::from(spec.group.is_some_and(|g| set.groups[g].parent.is_some()));
        }
    }
    assert!(promised > 0 && grouped > 0 && limited > 0 && deep > 0, "{promised} {grouped} {limited} {deep}");
}
