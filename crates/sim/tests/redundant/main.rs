//! Arrays that survive losses, on simulated disks that hold md superblocks.
//!
//! * `shape`: arrays by construction, and their disks when they are new.
//! * `world`: how images become an array again, and what must hold of a set of images.
//! * `copies`: raid1 and raid10.
//! * `parity`: raid4, raid5 and raid6.
//! * `holes`: a resync of large members with nothing on them.
//! * `orders`: bitmaps that come and go, passes that are held.
//! * `parts`: scrubs that do not run in one go.
//! * `roles`: the order of superblocks when members take roles.
//! * `rules`: rules that one small case each shows.
//! * `shards`: reads on another shard while a member fails, in all orders.
//! * `spent`: exhausted pools.

mod audit;
mod bad_places;
mod copies;
mod holes;
mod orders;
mod parity;
mod parts;
mod roles;
mod rules;
mod shape;
mod shards;
mod spent;
mod world;
