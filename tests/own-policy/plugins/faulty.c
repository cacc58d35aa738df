/* Plugins that are refused, and one that is stopped: each by a macro. */
#include "punctual_policy.h"

#if defined(NO_SYMBOL)
const int another_symbol = 1;
#elif defined(FUNCTION)
void punctual_policy_of_another_kind(void) __asm__("punctual_policy");
void punctual_policy_of_another_kind(void)
{
}
#elif defined(SMALL)
const int small __asm__("punctual_policy") = PUNCTUAL_POLICY_VERSION;
#else

static int64_t priority(const struct punctual_attributes *of)
{
	return of->priority;
}

#ifdef THREAD
#include <pthread.h>

static void *call(void *context)
{
	struct punctual_job job = { 0, PUNCTUAL_NEVER, 1000, 0 };

	punctual_add_job(context, &job);
	return NULL;
}

/* Its fifth event is handled by another thread. */
static void handle(void *self, struct punctual_context *context,
		   const struct punctual_event *event)
{
	static int events;
	struct punctual_release release = punctual_release_of(context);
	struct punctual_job job = { release.at, release.deadline, release.left, 0 };
	pthread_t thread;

	(void)self;
	if (event->kind != PUNCTUAL_RELEASED)
		return;
	punctual_add_job(context, &job);
	if (++events == 5 && !pthread_create(&thread, NULL, call, context))
		pthread_join(thread, NULL);
}
#endif

const struct punctual_policy punctual_policy = {
	.version = PUNCTUAL_POLICY_VERSION,
	.size = sizeof(struct punctual_policy),
	.name = "faulty",
	.priority = priority,
#if defined(VERSION)
	.version = 7,
#elif defined(SIZE)
	.size = 64,
#elif defined(NO_NAME)
	.name = NULL,
#elif defined(NAME)
	.name = "edf",
#elif defined(NEITHER)
	.priority = NULL,
#elif defined(ORDER)
	.order = { 9 },
#elif defined(ADMISSION)
	.admission = 9,
#elif defined(THREAD)
	.priority = NULL,
	.handle = handle,
#else
#error "which one?"
#endif
};
#endif
