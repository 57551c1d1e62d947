/*-------------------------------------------------------------------------
 *
 * simchance.h
 *		All chance of a simulation.
 *
 * It comes from one number, so a seed is a whole history.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMCHANCE_H
#define SIMCHANCE_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t sim_random_state;

/* splitmix64 */
static inline uint64_t
sim_random(void)
{
	uint64_t	z = (sim_random_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static inline uint32_t
sim_below(uint32_t n)
{
	return (uint32_t) ((sim_random() >> 32) * n >> 32);
}

/* Never, for 0. */
static inline bool
sim_chance(uint32_t one_in)
{
	return one_in != 0 && sim_below(one_in) == 0;
}

#endif							/* SIMCHANCE_H */
