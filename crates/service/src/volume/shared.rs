//! The volume as its control socket sees it: its status, orders, plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use braid_block::HasLimits;
use braid_device::Ram;
use braid_mem::Pages;
use braid_member::{Member, TrafficRead};
use braid_stack::{ByteSize, Node, Stack};
use braid_uring::Remote;

use super::budget::Budget;
use super::caching::Caching;
use super::exports::Exports;
use super::health::Health;
use super::held::Held;
use super::keeper::Keeper;
use super::live::Live;
use super::media::Media;
use super::orders::Orders;
use super::own::Own;
use super::recorded::Recorded;
use super::scrubs::Scrubs;
use super::spec::Spec;
use super::trace::Recording;
use super::verdict::{self, Serving, Verdict};
use super::warnings::Warnings;
use super::watcher::Watcher;
use super::{arrays, caches, memory, shard, slow_requests, to_shard};
use crate::control::{
    self, DeviceStatus, MemberStatus, OUTPUT_VERSION, RamStatus, RemoteStatus, Status,
};

/// Parts of a volume from which its status is made.
pub(super) struct Shared {
    pub(super) spec: Spec,
    /// Sizes of its memory.
    pub(super) budget: Budget,
    pub(super) own: Own,
    pub(super) media: Arc<Media>,
    /// All shards; arrays that keep copies live on the first.
    pub(super) remotes: Vec<Remote>,
    pub(super) live: Live,
    pub(super) caching: Caching,
    pub(super) scrubs: Arc<Scrubs>,
    pub(super) exports: Arc<Exports>,
    pub(super) warnings: Warnings,
    /// A shard panicked: the volume is ending.
    pub(super) panicked: Arc<AtomicBool>,
    pub(super) driver: &'static str,
    /// The shards' threads, and the page faults that they had taken when they began to serve.
    pub(super) threads: Vec<u32>,
    pub(super) faults: u64,
    pub(super) started: Instant,
    pub(super) trace: Option<Arc<Recording>>,
    pub(super) health: Health,
    pub(super) held: Held,
    pub(super) recorded: Recorded,
    pub(super) watcher: Watcher,
    pub(super) keeper: Arc<Keeper>,
}

impl control::Volume for Shared {
    fn carry_out(&self, order: control::Order, giver: Arc<control::Giver>) -> control::Answer {
        let remote = to_shard::Orders::new(self.remotes[0].clone(), giver);
        self.own.check_order(&order, &self.caching.stack()).map_err(|error| error.failure())?;
        let orders = Orders {
            media: &self.media,
            live: &self.live,
            caching: &self.caching,
            watcher: &self.watcher,
            scrubs: &self.scrubs,
            recorded: &self.recorded,
            remote: &remote,
        };
        match remote.is_plan() {
            true => orders.carry_out(order),
            false => self.live.long_orders.carry_out(order, |order| orders.carry_out(order)),
        }
    }

    fn plan(&self, order: control::Order) -> control::Plan {
        let giver = Arc::new(control::Giver::of_plan());
        let answer = self.carry_out(order.clone(), Arc::clone(&giver));
        match giver.is_planned() {
            true => control::Plan::possible(order.effect(&self.status())),
            false => control::Plan::answered(answer),
        }
    }

    fn curves(&self) -> Option<Vec<control::CacheCurve>> {
        caches::curves(&self.remotes[0])
    }

    fn follow(&self) {
        slow_requests::follow(&self.remotes);
    }

    fn followed(&self) -> control::SlowStatus {
        slow_requests::followed(&self.remotes)
    }

    fn status(&self) -> Status {
        let members = self.members();
        let limits = self.live.limits();
        let stack = self.stack();
        let exports = self.exports.statuses();
        let silent = shard::silent(&self.remotes, shard::PATIENCE);
        let remote = Some(&self.remotes[0]).filter(|_| !silent.contains(&0));
        let mut arrays = arrays::all(&self.media, remote, limits.read_only);
        self.scrubs.tell(&mut arrays);
        let caches = remote.map_or(Vec::new(), caches::all);
        let serving = match (self.panicked.load(Ordering::SeqCst), silent.first()) {
            (true, _) => Serving::Panicked,
            (false, Some(shard)) => Serving::Silent { shard: *shard, waited: shard::PATIENCE },
            (false, None) => Serving::Answers,
        };
        let Verdict { state, why, next } =
            verdict::judge(&self.spec.name, &members, &arrays, &caches, serving);
        let mut warnings = verdict::warnings_of(&members);
        let of_tls = exports.iter().filter_map(|export| export.tls.as_ref()?.warning.clone());
        warnings.extend(of_tls);
        warnings.extend(self.watcher.says());
        warnings.extend(self.keeper.says());
        warnings.extend(self.warnings.now(&arrays));
        // A member that is back is the nearest way out of being degraded.
        let next = self.watcher.next().filter(|_| state == "degraded").or(next);
        Status {
            output_version: OUTPUT_VERSION,
            name: self.spec.name.clone(),
            state: state.to_owned(),
            why,
            next,
            stack: arrays::stack_now(&stack, &self.media, &arrays).to_string(),
            device: DeviceStatus {
                size_bytes: limits.size,
                logical_block_bytes: limits.logical_block,
                physical_block_bytes: limits.physical_block,
                optimal_io_bytes: limits.optimal_io,
                read_only: limits.read_only,
                volatile: limits.volatile,
                locked: self.live.is_locked(),
            },
            attached: exports.iter().find(|export| export.is_device()).cloned(),
            nbd: exports.iter().find(|export| export.kind == "nbd").cloned(),
            exports,
            members,
            arrays,
            caches,
            jobs: self.live.long_orders.all(),
            rams: self.rams(),
            trace: self.trace.as_ref().map(|trace| trace.status()),
            promised_bytes: stack.memory(),
            re_add: self.watcher.policy(),
            spare_group: self.spec.spare_group.clone(),
            warnings,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            program_replaced: memory::is_program_replaced(),
            memory_bytes: memory::of_process("VmRSS:"),
            memory_locked_bytes: memory::of_process("VmLck:"),
            memory_kept_bytes: self.budget.kept(),
            memory_most_bytes: self.budget.most(),
            uptime_seconds: self.started.elapsed().as_secs(),
            io: self.driver.to_owned(),
            shards: self.remotes.len(),
            page_faults: self.page_faults(),
            cpu_ns: braid_sys::process::cpu_time_ns().unwrap_or(0),
        }
    }
}

impl Shared {
    /// Page faults of the shards since they began to serve.
    fn page_faults(&self) -> u64 {
        let now: u64 = self.threads.iter().map(|thread| memory::faults(*thread)).sum();
        now.saturating_sub(self.faults)
    }

    fn members(&self) -> Vec<MemberStatus> {
        let member = |leaf: &Arc<Member>| {
            let failures = leaf.failures();
            MemberStatus {
                member: self.label(leaf),
                size_bytes: leaf.limits().size,
                direct: leaf.is_direct(),
                failures: failures.map_or(0, |failures| failures.count()),
                last_failure: failures
                    .and_then(|failures| failures.last())
                    .map(|errno| errno.to_string()),
                gone: leaf.gone(),
                lost: failures.and_then(|failures| failures.lost()).map(|errno| errno.to_string()),
                io: leaf.tally().read(),
                slow: self.health.why_slow(leaf),
                // The client asks the disk, too: nothing here waits for it.
                disk: None,
                remote: leaf.traffic().map(|traffic| remote(&traffic.read())),
            }
        };
        self.media.leaves().iter().map(member).collect()
    }

    /// The stack, with the size that a RAM disk has by now.
    fn stack(&self) -> Stack {
        let mut stack = self.caching.stack();
        if let (Node::Ram(told), Some(ram)) = (&mut stack.node, self.media.ram()) {
            told.size = ByteSize(ram.size());
        }
        stack
    }

    /// A leaf as the stack spells it now.
    fn label(&self, leaf: &Member) -> String {
        match self.media.ram() {
            Some(_) => self.stack().to_string(),
            None => leaf.label.clone(),
        }
    }

    fn rams(&self) -> Vec<RamStatus> {
        let image = self.live.image().map(|path| path.display().to_string());
        let leaves = self.media.leaves();
        let all: Vec<_> = leaves.iter().filter_map(|leaf| Some((leaf, leaf.ram()?))).collect();
        let ask = || all.iter().map(|(_, ram)| ram.allocated_bytes().ok()).collect();
        let held = self.held.of(all.len(), ask);
        let status = |((leaf, ram), allocated_bytes): (&(&Arc<Member>, &Ram), Option<u64>)| {
            let options = ram.options();
            RamStatus {
                ram: self.label(leaf),
                size_bytes: ram.size(),
                most_bytes: ram.most(),
                used_bytes: ram.used_bytes(),
                allocated_bytes,
                logical_block_bytes: options.logical_block,
                preallocated: options.preallocate,
                huge_pages: options.pages == Pages::Pool,
                memory_locked: options.lock,
                image: image.clone(),
            }
        };
        all.iter().zip(held).map(status).collect()
    }
}

/// The connections of a remote member, from its counts.
fn remote(counts: &TrafficRead) -> RemoteStatus {
    RemoteStatus {
        connections: counts.connections,
        connections_wanted: counts.wanted,
        reconnects: counts.reconnects,
        repeated: counts.repeated,
        expired: counts.overdue,
        sent_bytes: counts.sent,
        received_bytes: counts.received,
        round_trip_us: counts.round_trip_us,
        waiting_us: counts.waiting_us,
        deadline_us: counts.deadline_us,
        trouble: counts.trouble.clone(),
    }
}
