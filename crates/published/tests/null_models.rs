//! The null models' figures that are printed with the series, and what a judgement promises.

use braid_published::{NullModel, built_in, judge};

#[test]
fn null_models_have_their_published_figures() {
    let studies = built_in();
    let study =
        studies.iter().find(|study| study.name == "raid-levels-2hdd").expect("it is built in");
    for (model, published) in [(NullModel::Average, 0.190), (NullModel::Striping, 0.299)] {
        let judgement = judge(study, &model);
        let summary = judgement.predictions().expect("every row has a figure");
        assert_eq!((summary.scored, summary.missing), (48, 0));
        assert!((summary.mean - published).abs() < 0.0005, "{model:?}: {}", summary.mean);
    }
    for study in &studies {
        for model in NullModel::ALL {
            let j = judge(study, &model);
            println!(
                "{} {model:?} {:?} {:?} worst {:?}",
                study.name,
                j.predictions(),
                j.held(),
                j.worst().map(|(r, s)| (&r.id, s))
            );
            for c in &j.claims {
                println!("   {} print {:?} model {:?} {:?}", c.id, c.in_print, c.in_model, c.taken)
            }
        }
    }
}
