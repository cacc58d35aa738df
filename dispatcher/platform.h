/* SPDX-License-Identifier: MIT */
/*
 * What differs between the two builds of these files: native, and BPF with the data in an arena.
 *
 * The kernel's verifier sets the rules for both: no pointers between objects, scalars in and out
 * of functions, at most five arguments, no recursion, at most eight frames (two are the host's),
 * every loop through pd_while, no struct assignment, no 128-bit arithmetic, no signed division.
 */
#pragma once

typedef unsigned char pd_u8;
typedef unsigned short pd_u16;
typedef unsigned int pd_u32;
typedef unsigned long long pd_u64;
typedef long long pd_i64;

#ifdef __bpf__

/* A dispatcher is named by the address of its block in the arena (host-kernel's bpf/arena.h). */
typedef pd_u64 pd_ref;
#define PD_ARENA __attribute__((address_space(1)))
/* Global, so that the verifier proves each function once for all callers; weak, so that the
 * compiler also passes arguments that it sees unused. */
#define PD_FN __attribute__((noinline, weak))
#define PD_API __attribute__((noinline, weak))
/* Called from few places, and folded into them so that no chain is longer than six. */
#define PD_ALWAYS_INLINE static inline __attribute__((always_inline))
#define PD_NOINLINE PD_ALWAYS_INLINE
/* Called from many places: folded where that is cheap, which a BPF frame's stack is not. */
#define PD_SHARE PD_FN
#define PD_INLINE static inline __attribute__((always_inline))
/* Keeps a pointer that steps through an array a pointer: kernels up to 6.18.15 accept an arena
 * pointer plus a number, but not a number plus the pointer that a compiler may make of it. */
#define PD_BARRIER_VAR(pointer) asm volatile("" : "+r"(pointer))
/* For the same reason an element's address is made before it is taken for an arena pointer. */
#define PD_NTH(array, i)                        \
	(*({                                    \
		typeof(&(array)[0]) pd_nth = &(array)[i]; \
		asm("" : "+r"(pd_nth));         \
		pd_nth;                         \
	}))
/* The compiler reads memory again after the barrier: the verifier then does not know the values,
 * and has one branch less to follow. */
#define PD_BARRIER() asm volatile("" ::: "memory")
#define pd_can_loop                                                    \
	({                                                             \
		__label__ l_break, l_on;                               \
		int pd_on = 1;                                         \
		asm volatile goto("may_goto %l[l_break]" :::: l_break); \
		goto l_on;                                             \
	l_break:                                                       \
		pd_on = 0;                                             \
	l_on:;                                                         \
		pd_on;                                                 \
	})

#else

typedef struct pd *pd_ref;
#define PD_ARENA
#define PD_FN static
#define PD_ALWAYS_INLINE static inline __attribute__((always_inline))
/* Seldom called, and kept apart so that the way past it stays short. */
#define PD_NOINLINE static __attribute__((noinline))
#define PD_SHARE PD_ALWAYS_INLINE
#ifndef PD_API
#define PD_API
#endif
#define PD_INLINE static inline __attribute__((always_inline))
#define PD_BARRIER_VAR(pointer) ((void)0)
#define PD_NTH(array, i) ((array)[i])
#define PD_BARRIER() ((void)0)
#define pd_can_loop 1

#endif

/* The only loop there is. The verifier accepts it whatever the condition does; the bound that
 * it adds by itself is eight million turns, far beyond any heap's depth. */
#define pd_while(condition) while ((condition) && pd_can_loop)

/* One struct over another of its type; `space` is that of `from`. Word by word: an assignment would
 * be a memcpy, which forgets the arena's address space. */
typedef pd_u64 __attribute__((may_alias)) pd_word;
#define pd_copy(to, from, space)                                                            \
	do {                                                                                \
		const pd_word space *pd_from = (const pd_word space *)(from);               \
		pd_word PD_ARENA *pd_to = (pd_word PD_ARENA *)(to);                         \
		pd_u32 pd_i;                                                                \
                                                                                            \
		for (pd_i = 0; pd_i < sizeof(*(to)) / sizeof(pd_word); pd_i++)              \
			pd_to[pd_i] = pd_from[pd_i];                                        \
	} while (0)

#define PD_LIKELY(x) __builtin_expect(!!(x), 1)
#define PD_UNLIKELY(x) __builtin_expect(!!(x), 0)
