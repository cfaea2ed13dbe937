/* vec_hwy.h: what the Highway bodies share: loads and stores of any alignment, and walks over whole vectors that end with a partial one.
 *
 * Included by highway.cc once for each target that Highway compiles it for, inside the target's namespace: no include guard.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined(KERNELS_VEC_HWY_H) == defined(HWY_TARGET_TOGGLE)
#ifdef KERNELS_VEC_HWY_H
#undef KERNELS_VEC_HWY_H
#else
#define KERNELS_VEC_HWY_H
#endif

HWY_BEFORE_NAMESPACE();
namespace kn_hwy {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/* Calls whole(i) for each whole vector of `lanes` words of n, and returns where the rest begins. */
template <class F> HWY_INLINE size_t each_vector(size_t n, size_t lanes, F whole)
{
	size_t i = 0;
	for (; i + lanes <= n; i += lanes)
		whole(i);
	return i;
}

template <class T> HWY_INLINE T load_word(const void *p, size_t i)
{
	T v;
	memcpy(&v, (const uint8_t *)p + i * sizeof(T), sizeof(T));
	return v;
}
template <class T> HWY_INLINE void store_word(void *p, size_t i, T v) { memcpy((uint8_t *)p + i * sizeof(T), &v, sizeof(T)); }

/* Highway wants pointers of the lane's type; its unaligned loads and stores take any address. */
template <class D> HWY_INLINE hn::Vec<D> load(D d, const void *p, size_t i)
{
	return hn::LoadU(d, (const hn::TFromD<D> *)((const uint8_t *)p + i * sizeof(hn::TFromD<D>)));
}
template <class D> HWY_INLINE void store(D d, void *p, size_t i, hn::Vec<D> v)
{
	hn::StoreU(v, d, (hn::TFromD<D> *)((uint8_t *)p + i * sizeof(hn::TFromD<D>)));
}

}
}
HWY_AFTER_NAMESPACE();

#endif
