//! Search for the values with the smallest distance: Levenberg and Marquardt, then coordinates.

use super::objective::{Objective, norm};
use super::parameter::Space;
use super::{Progress, choice};
use crate::disk::config::DiskConfig;

/// Share by which a choice must reduce the distance before the numbers are fitted, and afterwards.
pub(super) const CHOICE_GAINS: [f64; 2] = [0.6, 0.05];

/// Penalty of a change of a number by twenty times its scale, as a share of the first distance. It
/// keeps numbers that no request depends on at their values.
const PENALTY: f64 = 0.01;

/// Share by which a step of the descent must reduce the distance to be followed by another one.
const STEP_GAIN: f64 = 1e-4;

/// Rise of the distance that defines the uncertainty of a value.
const RISE: f64 = 0.05;

/// A search with a limited number of replays.
pub(super) struct Search<'s> {
    objective: &'s Objective<'s>,
    replays: usize,
    limit: usize,
    is_ended: bool,
    /// Distance of the first replay.
    first_ms: f64,
    best_ms: f64,
    progress: &'s mut dyn FnMut(Progress) -> bool,
}

impl<'s> Search<'s> {
    pub fn new(
        objective: &'s Objective<'s>,
        limit: usize,
        progress: &'s mut dyn FnMut(Progress) -> bool,
    ) -> Search<'s> {
        Search {
            objective,
            replays: 0,
            limit: limit.max(1),
            is_ended: false,
            first_ms: 0.0,
            best_ms: f64::INFINITY,
            progress,
        }
    }

    pub fn replays(&self) -> usize {
        self.replays
    }

    /// True if the limit or the caller ended the search.
    pub fn is_cut(&self) -> bool {
        self.is_ended
    }

    /// Returns the residuals, or none if the disk is impossible or the search has ended.
    fn residuals(&mut self, config: &DiskConfig) -> Option<Vec<f64>> {
        if self.is_ended || self.replays >= self.limit {
            self.is_ended = true;
            return None;
        }
        self.replays += 1;
        let residuals = self.objective.residuals(config);
        if let Some(residuals) = &residuals {
            if self.replays == 1 {
                self.first_ms = norm(residuals);
            }
            self.best_ms = self.best_ms.min(norm(residuals));
        }
        let progress = Progress { replays: self.replays, limit: self.limit, distance_ms: self.best_ms };
        self.is_ended |= !(self.progress)(progress);
        residuals
    }

    /// Returns the residuals of values, with the penalties of their changes.
    fn penalised(&mut self, space: &Space, values: &[f64]) -> Option<Vec<f64>> {
        let mut residuals = self.residuals(&space.config(values))?;
        let start = space.start();
        let penalties = values
            .iter()
            .zip(start)
            .enumerate()
            .map(|(index, (value, start))| PENALTY * self.first_ms * (value - start) / (20.0 * space.scale(index)));
        residuals.extend(penalties);
        Some(residuals)
    }

    /// Returns the distance; infinite if the disk is impossible.
    pub fn distance_ms(&mut self, space: &Space, values: &[f64]) -> f64 {
        self.penalised(space, values).map_or(f64::INFINITY, |residuals| norm(&residuals))
    }

    /// Returns the derivatives of the residuals by each value, with steps of the share `step` of
    /// its scale. The derivative of a value that no request depends on is 0.
    fn derivatives(&mut self, space: &Space, values: &[f64], at: &[f64], step: f64) -> Vec<Vec<f64>> {
        let mut columns = Vec::with_capacity(space.len());
        for index in 0..space.len() {
            let mut side = |change: f64| {
                let mut moved = values.to_vec();
                moved[index] = space.clamped(index, values[index] + change);
                let step = moved[index] - values[index];
                let residuals = if step == 0.0 { None } else { self.penalised(space, &moved) };
                residuals.map(|residuals| (step, residuals))
            };
            let change = step * space.scale(index);
            let (up, down) = (side(change), side(-change));
            let slope = |(step, residuals): &(f64, Vec<f64>), from: (f64, &[f64])| {
                residuals.iter().zip(from.1).map(|(a, b)| (a - b) / (step - from.0)).collect()
            };
            columns.push(match (up, down) {
                (Some(up), Some(down)) => slope(&up, (down.0, &down.1)),
                (Some(one), None) | (None, Some(one)) => slope(&one, (0.0, at)),
                (None, None) => vec![0.0; at.len()],
            });
        }
        columns
    }

    /// Makes up to `steps` steps of Levenberg and Marquardt. Derivatives have steps of the share
    /// `step` of the scale of each number.
    pub fn descend(&mut self, space: &Space, values: &mut Vec<f64>, steps: usize, step: f64) {
        let Some(mut at) = self.penalised(space, values) else { return };
        let mut damping = 0.01;
        for _ in 0..steps {
            let columns = self.derivatives(space, values, &at, step);
            if self.is_ended {
                return;
            }
            let normal = products(&columns);
            let gradient: Vec<f64> = columns.iter().map(|column| dot(column, &at)).collect();
            let before_ms = norm(&at);
            let mut is_better = false;
            for _ in 0..6 {
                let mut damped = normal.clone();
                let largest = (0..space.len()).map(|index| normal[index][index]).fold(0.0, f64::max);
                for (index, row) in damped.iter_mut().enumerate() {
                    row[index] += damping * row[index] + 1e-9 * largest;
                }
                let Some(step) = solve(damped, &gradient) else { break };
                let next: Vec<f64> = (values.iter().zip(&step).enumerate())
                    .map(|(index, (value, step))| space.clamped(index, value - step))
                    .collect();
                match self.penalised(space, &next) {
                    Some(residuals) if norm(&residuals) < norm(&at) => {
                        (*values, at, is_better) = (next, residuals, true);
                        damping = (damping / 5.0_f64).max(1e-6);
                        break;
                    }
                    _ => damping *= 5.0,
                }
            }
            if !is_better || norm(&at) > before_ms * (1.0 - STEP_GAIN) {
                return;
            }
        }
    }

    /// Moves along one direction at a time, by smaller and smaller steps.
    pub fn walk(&mut self, space: &Space, values: &mut Vec<f64>) {
        let mut best_ms = self.distance_ms(space, values);
        let directions = space.directions(self.objective.mean_blocks());
        for factor in [8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.1, 0.04] {
            for direction in &directions {
                for signed in [factor, -factor] {
                    let moved: Vec<f64> = (values.iter().zip(direction).enumerate())
                        .map(|(index, (value, part))| space.clamped(index, value + signed * part))
                        .collect();
                    let moved_ms = if moved == *values { f64::INFINITY } else { self.distance_ms(space, &moved) };
                    if moved_ms < best_ms {
                        (best_ms, *values) = (moved_ms, moved);
                        break;
                    }
                }
            }
        }
    }

    /// Returns the disk whose one other choice reduces the distance most, if one of them reduces it
    /// by the share `gain`.
    pub fn choose(&mut self, config: &DiskConfig, gain: f64) -> Option<DiskConfig> {
        let mut best_ms = self.residuals(config).map(|residuals| norm(&residuals))? * (1.0 - gain);
        let mut best = None;
        for other in choice::others(config) {
            if let Some(residuals) = self.residuals(&other)
                && norm(&residuals) < best_ms
            {
                (best_ms, best) = (norm(&residuals), Some(other));
            }
        }
        best
    }

    /// Returns values that the trace does not determine to those before the fit, unless that raises
    /// the distance.
    pub fn restore(&mut self, space: &Space, values: &mut [f64], before: &[f64], plus_minus: &[Option<f64>]) {
        self.limit = self.limit.max(self.replays + space.len() + 1);
        let was_ended = std::mem::take(&mut self.is_ended);
        let mut best_ms = self.distance_ms(space, values);
        for index in (0..space.len()).filter(|index| plus_minus[*index].is_none()) {
            let after = std::mem::replace(&mut values[index], before[index]);
            match self.distance_ms(space, values) {
                restored_ms if restored_ms <= best_ms * (1.0 + STEP_GAIN) => best_ms = restored_ms,
                _ => values[index] = after,
            }
        }
        self.is_ended |= was_ended;
    }

    /// Returns the uncertainty of each value; none if the trace does not determine it.
    pub fn plus_minus(&mut self, space: &Space, values: &[f64]) -> Vec<Option<f64>> {
        // The few replays of this step are never cut, so that a cut fit has uncertainties, too.
        self.limit = self.limit.max(self.replays + 2 * space.len() + 2);
        let was_ended = std::mem::take(&mut self.is_ended);
        let Some(at) = self.residuals(&space.config(values)) else { return vec![None; space.len()] };
        let mut columns = self.derivatives(space, values, &at, 1.0);
        self.is_ended = was_ended;
        // The penalties are no measurements.
        columns.iter_mut().for_each(|column| column.truncate(at.len()));
        let square = |column: &Vec<f64>| dot(column, column);
        let largest = columns.iter().map(square).fold(0.0, f64::max);
        let mut normal = products(&columns);
        for (index, row) in normal.iter_mut().enumerate() {
            row[index] += 1e-9 * largest;
        }
        let rise = (1.0 + RISE).powi(2) - 1.0;
        let uncertain = |index: usize| {
            if square(&columns[index]) <= 1e-6 * largest {
                return None;
            }
            let mut unit = vec![0.0; space.len()];
            unit[index] = 1.0;
            let inverse = solve(normal.clone(), &unit)?[index];
            let change = (rise * dot(&at, &at) * inverse.max(0.0)).sqrt();
            (change < 20.0 * space.scale(index)).then_some(change)
        };
        (0..space.len()).map(uncertain).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Products of all pairs of columns.
fn products(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    columns.iter().map(|a| columns.iter().map(|b| dot(a, b)).collect()).collect()
}

/// Solves a system with a symmetric positive definite matrix by the method of Cholesky.
fn solve(mut matrix: Vec<Vec<f64>>, right: &[f64]) -> Option<Vec<f64>> {
    let size = right.len();
    for row in 0..size {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let rest = matrix[row][column] - sum;
            if row == column {
                if rest.is_nan() || rest <= 0.0 {
                    return None;
                }
                matrix[row][row] = rest.sqrt();
            } else {
                matrix[row][column] = rest / matrix[column][column];
            }
        }
    }
    let mut solution = right.to_vec();
    for row in 0..size {
        let sum: f64 = (0..row).map(|k| matrix[row][k] * solution[k]).sum();
        solution[row] = (solution[row] - sum) / matrix[row][row];
    }
    for row in (0..size).rev() {
        let sum: f64 = (row + 1..size).map(|k| matrix[k][row] * solution[k]).sum();
        solution[row] = (solution[row] - sum) / matrix[row][row];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symmetric_system_is_solved_and_a_singular_one_is_not() {
        let matrix = vec![vec![4.0, 2.0, 0.0], vec![2.0, 5.0, 1.0], vec![0.0, 1.0, 3.0]];
        let solution = solve(matrix, &[8.0, 15.0, 11.0]).expect("the matrix is positive definite");
        for (found, expected) in solution.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{solution:?}");
        }
        assert_eq!(solve(vec![vec![1.0, 1.0], vec![1.0, 1.0]], &[1.0, 1.0]), None);
    }
}
