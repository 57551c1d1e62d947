/*-------------------------------------------------------------------------
 *
 * simlooks.h
 *		Included before all else by the modules in sim_log: at each look at how far
 *		the log is claimed, others may have gone on.
 *
 *-------------------------------------------------------------------------
 */
#ifndef SIMLOOKS_H
#define SIMLOOKS_H

#include "ring.h"

extern uint64_t sim_insert_lsn(const GlRing *ring);

#define gl_ring_insert_lsn(ring) sim_insert_lsn(ring)

#endif							/* SIMLOOKS_H */
