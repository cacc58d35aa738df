//! The order of a group's jobs.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Attribute;
use punctual_taskset::TaskSet;

use crate::check_takes_jobs;

/// One to four attributes, each once, the most important one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOrder {
    by: [Attribute; 4],
    count: usize,
}

impl JobOrder {
    /// `None`: they are not one to four, each once.
    #[must_use]
    pub fn new(by: &[Attribute]) -> Option<JobOrder> {
        let twice = by.iter().enumerate().any(|(n, attribute)| by[..n].contains(attribute));
        let mut order = JobOrder { by: [Attribute::Priority; 4], count: by.len() };
        if by.is_empty() || by.len() > order.by.len() || twice {
            return None;
        }
        order.by[..by.len()].copy_from_slice(by);
        Some(order)
    }

    /// Of a group (`None`: the top one).
    ///
    /// # Errors
    /// The group's policy makes its jobs; they are not one to four attributes, each once.
    pub fn of_group(
        set: &TaskSet,
        group: Option<usize>,
        by: &[Attribute],
    ) -> Result<JobOrder, Diagnostic> {
        check_takes_jobs(set, group)?;
        JobOrder::new(by).ok_or_else(|| {
            let cause = "an order has one to four attributes, each once";
            Diagnostic::usage(cause, "name the most important one first")
        })
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.by[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::JobOrder;
    use punctual_dispatcher::Attribute::{Budget, Finish, Priority, Start};

    #[test]
    fn an_order_has_one_to_four_attributes_each_once() {
        let all = [Finish, Priority, Start, Budget];
        for count in 1..=4 {
            let order = JobOrder::new(&all[..count]).expect("it is in order");
            assert_eq!(order.attributes(), &all[..count]);
        }
        assert_eq!(JobOrder::new(&[]), None);
        assert_eq!(JobOrder::new(&[Start, Finish, Start]), None);
        assert_eq!(JobOrder::new(&[Start, Finish, Priority, Budget, Start]), None);
    }
}
