//! What a volume that is up says of itself, and who carries out orders: what the control socket sees.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use braid_device::{Ram, Tally};
use braid_export_nbd::{Counters, Counts};
use braid_mem::Pages;
use braid_stack::{ByteSize, Node, Stack};
use braid_uring::Remote;

use super::attachment::Facts;
use super::caching::Caching;
use super::health::Health;
use super::held::Held;
use super::keeper::Keeper;
use super::leaf::{Leaf, Medium, client_io};
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
use super::{arrays, caches, memory, shard};
use crate::control::{
    self, ClientIo, DeviceStatus, ExportStatus, MemberStatus, OUTPUT_VERSION, RamStatus, Status,
};

/// What a status is made of.
pub(super) struct Shared {
    pub(super) spec: Spec,
    pub(super) own: Own,
    pub(super) media: Arc<Media>,
    /// All shards; arrays that keep copies live on the first.
    pub(super) remotes: Vec<Remote>,
    pub(super) live: Live,
    pub(super) caching: Caching,
    pub(super) scrubs: Arc<Scrubs>,
    /// What each shard's NBD clients asked for, and how long that took.
    pub(super) nbd: Vec<(Arc<Counters>, Tally)>,
    pub(super) uris: Vec<String>,
    pub(super) attached: Option<Facts>,
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
    fn carry_out(&self, order: control::Order, giver: control::Giver) -> control::Answer {
        let remote = shard::Orders::new(self.remotes[0].clone(), giver);
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
        orders.carry_out(order)
    }

    fn curves(&self) -> Option<Vec<control::CacheCurve>> {
        caches::curves(&self.remotes[0])
    }

    fn status(&self) -> Status {
        let members = self.members();
        let limits = self.live.limits();
        let stack = self.stack();
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
        warnings.extend(self.watcher.says());
        warnings.extend(self.keeper.says());
        warnings.extend(self.warnings.now(&arrays));
        // Who is back is the nearest way out of being degraded.
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
            attached: self.attached.as_ref().map(|facts| facts.status()),
            nbd: (!self.uris.is_empty()).then(|| self.nbd_status()),
            members,
            arrays,
            caches,
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
            uptime_seconds: self.started.elapsed().as_secs(),
            io: self.driver.to_owned(),
            shards: self.nbd.len(),
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
        let member = |leaf: &Arc<Leaf>| {
            let (direct, failures) = match &leaf.medium {
                Medium::File(file) => (Some(file.is_direct()), Some(file.failures())),
                Medium::Ram(_) | Medium::Modelled(_) => (None, None),
            };
            MemberStatus {
                member: self.label(leaf),
                size_bytes: leaf.limits().size,
                direct,
                failures: failures.map_or(0, |failures| failures.count()),
                last_failure: failures
                    .and_then(|failures| failures.last())
                    .map(|errno| errno.to_string()),
                gone: leaf.gone(),
                lost: failures.and_then(|failures| failures.lost()).map(|errno| errno.to_string()),
                io: leaf.io(),
                slow: self.health.why_slow(leaf),
                // Whoever asks asks the disk, too: nothing here waits for it.
                disk: None,
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
    fn label(&self, leaf: &Leaf) -> String {
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
        let status = |((leaf, ram), allocated_bytes): (&(&Arc<Leaf>, &Ram), Option<u64>)| {
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

    fn nbd_status(&self) -> ExportStatus {
        let (mut counts, mut io) = (Counts::default(), ClientIo::default());
        for (counters, asked) in &self.nbd {
            counts += counters.read();
            io = io.plus(&client_io(asked));
        }
        let ratio = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        ExportStatus {
            uris: self.uris.clone(),
            connections: counts.connections.saturating_sub(counts.disconnections),
            connections_accepted: counts.connections,
            connections_refused: counts.connections_refused,
            protocol_errors: counts.protocol_errors,
            requests: counts.requests,
            replies: counts.replies,
            errors: counts.errors,
            receives: counts.receives,
            sends: counts.sends,
            requests_per_receive: ratio(counts.requests, counts.receives),
            replies_per_send: ratio(counts.replies, counts.sends),
            read_bytes: counts.read_bytes,
            written_bytes: counts.written_bytes,
            io,
        }
    }
}
