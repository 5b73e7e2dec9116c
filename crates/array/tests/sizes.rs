//! A geometry is as large as `braid-level` says before there is one: what plans and superblocks
//! reckon with is what is served.

use braid_array::geometry::{Linear, Raid0, Raid1, Raid10, Raid456};
use braid_array::{Geometry, Mirrored};
use braid_level::size::array_size;
use braid_level::{Level, ParityLayout, Raid0Layout, Raid10Layout};

const CHUNK: u64 = 8192;

#[test]
fn geometries_have_the_sizes_that_their_level_says() {
    for members in 1..=6_u64 {
        for least in (5..60).step_by(3).map(|blocks| blocks * 4096) {
            let sizes: Vec<u64> = (0..members).map(|role| least + role % 3 * CHUNK).collect();
            let of = |level, layout, used: &[u64]| array_size(level, layout, CHUNK, used);
            let linear = Linear::new(&sizes, 512).map(|one| one.size());
            assert_eq!(linear.ok(), array_size(Level::Linear, 0, 0, &sizes));
            let raid0 = Raid0::new(&sizes, CHUNK, Raid0Layout::Alternate, 512);
            assert_eq!(raid0.ok().map(|one| one.size()), of(Level::Raid0, 2, &sizes));
            let same = vec![least; members as usize];
            let raid1 = Raid1::new(least, same.len()).map(|one| Mirrored::size(&one));
            assert_eq!(raid1.ok(), of(Level::Raid1, 0, &same));
            for number in [0x102, 0x103, 0x201, 0x1_0201, 0x202, 0x4_0201] {
                let layout = Raid10Layout::from_number(number).unwrap();
                if let Ok(raid10) = Raid10::new(least, same.len(), CHUNK, layout) {
                    let size = Some(Mirrored::size(&raid10));
                    assert_eq!(size, of(Level::Raid10, number, &same), "{layout} of {members}");
                }
            }
            for level in [Level::Raid4, Level::Raid5, Level::Raid6] {
                let layout = ParityLayout::ParityLast;
                let parity = level.with_parity().unwrap();
                if let Ok(raid) = Raid456::new(least, same.len(), CHUNK, parity, layout) {
                    let size = of(level, layout.number(), &same);
                    assert_eq!(Some(raid.size()), size, "{level} of {members}");
                }
            }
        }
    }
}
