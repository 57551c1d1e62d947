/*-------------------------------------------------------------------------
 *
 * sync_meter.h
 *		Is this a volume that counts syncs, and what does one use up?
 *
 *-------------------------------------------------------------------------
 */
#ifndef GROUPLOG_SYNC_METER_H
#define GROUPLOG_SYNC_METER_H

#include "sync_policy.h"

/*
 * A sync that took took_us is done at now_us, and the usual one takes
 * policy->sync_us: what does it say of a meter?  Sets policy->meter_us.
 */
extern void gl_meter_sync_done(GlPolicy *policy, double took_us, int64_t now_us);

#endif							/* GROUPLOG_SYNC_METER_H */
