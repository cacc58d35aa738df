//! The methods and properties, as clients call them.
//!
//! Calls are served one after another by the connection's thread: a reservation holds up the next
//! one, as in RealtimeKit's daemon. A question to polkit does not.

use std::sync::Arc;

use punctual_daemon::User;
use punctual_process::Identity;
use punctual_sys::pidfd;
use zbus::fdo::{ConnectionCredentials, Error, Result};
use zbus::message::Header;
use zbus::{interface, Connection};

use crate::bus::call_bus;
use crate::limits::{MAX_PRIORITY, MIN_NICE};
use crate::promotions::Promotions;
use crate::{reset, NAME};

/// The interface of RealtimeKit.
pub struct Interface(pub Arc<Promotions>);

/// A client, as the bus reports it.
struct Caller {
    user: User,
    pid: u64,
}

impl Caller {
    async fn of(header: &Header<'_>, bus: &Connection) -> Result<Caller> {
        let unknown = || Error::Failed("the bus does not say who called".to_owned());
        let sender = header.sender().ok_or_else(unknown)?;
        let reply = call_bus(bus, "GetConnectionCredentials", &sender.as_str()).await?;
        let credentials: ConnectionCredentials = reply.body().deserialize()?;
        let uid = credentials.unix_user_id().ok_or_else(unknown)?;
        let pid = u64::from(credentials.process_id().ok_or_else(unknown)?);
        let process = i32::try_from(pid).ok().and_then(Identity::of);
        // The bus passes a pidfd where it can; else the number may be a later process's.
        let has_ended = credentials.process_fd().is_some_and(pidfd::has_ended);
        let groups = credentials.into_unix_group_ids().unwrap_or_default();
        let mut user = User::new(uid, groups);
        user.process = process.filter(|_| !has_ended);
        Ok(Caller { user, pid })
    }

    /// A client that the configuration or polkit permits something.
    async fn authorized(
        promotions: &Promotions,
        header: &Header<'_>,
        bus: &Connection,
    ) -> Result<Caller> {
        let mut caller = Caller::of(header, bus).await?;
        promotions.authorize(&mut caller.user).await?;
        Ok(caller)
    }

    /// Beside the policy of the bus.
    fn must_be_root(&self) -> Result<()> {
        if self.user.is_root() {
            return Ok(());
        }
        Err(Error::AccessDenied("this is root's".to_owned()))
    }
}

#[interface(name = "org.freedesktop.RealtimeKit1")]
impl Interface {
    async fn make_thread_realtime(
        &self,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        let Caller { user, pid } = Caller::authorized(&self.0, &header, bus).await?;
        Ok(self.0.make_realtime(&user, (pid, thread), priority)?)
    }

    #[zbus(name = "MakeThreadRealtimeWithPID")]
    async fn make_thread_realtime_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        let Caller { user, .. } = Caller::authorized(&self.0, &header, bus).await?;
        Ok(self.0.make_realtime(&user, (process, thread), priority)?)
    }

    async fn make_thread_high_priority(
        &self,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        let Caller { user, pid } = Caller::authorized(&self.0, &header, bus).await?;
        Ok(self.0.make_high_priority(&user, (pid, thread), priority)?)
    }

    #[zbus(name = "MakeThreadHighPriorityWithPID")]
    async fn make_thread_high_priority_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        let Caller { user, .. } = Caller::authorized(&self.0, &header, bus).await?;
        Ok(self.0.make_high_priority(&user, (process, thread), priority)?)
    }

    async fn reset_known(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        Caller::of(&header, bus).await?.must_be_root()?;
        self.0.reset_known();
        Ok(())
    }

    async fn reset_all(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        Caller::of(&header, bus).await?.must_be_root()?;
        self.0.reset_known();
        reset::demote_unknown(&self.0.reserved_processes());
        Ok(())
    }

    /// Gives the name back; what threads have remains theirs, as with RealtimeKit.
    async fn exit(
        &self,
        #[zbus(header)] header: Header<'_>,
        #[zbus(connection)] bus: &Connection,
    ) -> Result<()> {
        Caller::of(&header, bus).await?.must_be_root()?;
        call_bus(bus, "ReleaseName", &NAME).await?;
        Ok(())
    }

    /// Execution time without blocking that clients let the kernel end them after (RLIMIT_RTTIME):
    /// without limit, since the budget of a thread ends before. A client that lowers its limit to
    /// RealtimeKit's 200 ms would be killed for an overrun.
    #[zbus(property(emits_changed_signal = "const"), name = "RTTimeUSecMax")]
    fn rttime_usec_max(&self) -> i64 {
        i64::MAX
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn max_realtime_priority(&self) -> i32 {
        MAX_PRIORITY
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn min_nice_level(&self) -> i32 {
        MIN_NICE
    }
}
